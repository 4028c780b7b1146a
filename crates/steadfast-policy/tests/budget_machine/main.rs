//! The retry budget: the published figures, its properties, and a slow obvious model beside it.

mod figures;

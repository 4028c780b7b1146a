//! The retry budget: the published figures, its properties, and a slow obvious model beside it.

mod beside_model;
mod figures;
mod history;
mod model;
mod outages;
mod properties;
mod reconfigure;

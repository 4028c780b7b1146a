//! Outages: modelled upstreams, what befalls them, and the load that many clients put on them.

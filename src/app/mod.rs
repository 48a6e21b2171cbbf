//! From configuration to services: the only reader of a whole configuration.

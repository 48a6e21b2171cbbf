//! Child processes: started in a group of their own, watched, and killed with everything they started.

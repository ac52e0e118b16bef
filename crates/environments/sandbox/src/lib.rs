//! Sessions that may touch only what they were given.

//! Protocol buffers: the wire format.

//! Models: the network and the script, behind one trait.

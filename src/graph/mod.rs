//! A matrix as a graph: traversal and orderings.

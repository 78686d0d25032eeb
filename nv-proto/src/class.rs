//! Class ids by generation, and the choice among those that a GPU offers.

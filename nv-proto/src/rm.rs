//! The resource manager's ABI: parameter structures, commands, statuses.

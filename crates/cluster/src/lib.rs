//! A cluster's parts without its sockets: who is in it, and what masters and workers do.

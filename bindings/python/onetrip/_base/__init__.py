"""What both kinds of connections have: all that does not wait. Nothing in here knows either of them."""

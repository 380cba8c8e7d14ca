"""What the paper compares with, and its own idea repaired: one file an author, as figure 2 runs it and as certified."""

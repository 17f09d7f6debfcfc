"""The judge: hidden tests, the remote student, the wire format and the verdict."""

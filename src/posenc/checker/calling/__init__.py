"""How a subject is called: arrays of its library, the roles of its arguments, the layout of its tensors, its result."""

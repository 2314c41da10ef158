"""All that knows MuJoCo's memory: where its fields lie, how its functions are called, and how
its constraint rows become the blocks of a contact problem."""

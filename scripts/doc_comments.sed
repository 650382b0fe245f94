# Turns the headers' plain comments into those that Doxygen reads; docs/Doxyfile names it.
# The first one describes the file.
1s|^/\* |/** \\file\n * |
# A ruler between sections describes nothing.
/^\/\* ----/b
# At a line's start: what follows. Behind a declaration: that one.
s|^\( *\)/\* |\1/** |
s|^\(.*[^ /*].*[^ ]\) *\/\* |\1 /**< |
# Operators of a family share a comment; each has its parameters in its struct.
s|^KILN_OPERATOR_FUNCTION([a-z0-9_]*, \([a-z0-9_]*\))|/** Takes a \\ref \1, which says more. */ &|
s|^KILN_WORKSPACE_FUNCTION([a-z0-9_]*, \([a-z0-9_]*\))|/** The exact size of the workspace for a \\ref \1, in bytes. */ &|
s|^static inline |/** The form to call: passes the size of the caller's struct. */ &|

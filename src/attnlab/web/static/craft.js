"use strict";
// Attention by hand, on the page: the same component as in a notebook.
attnlabBoard.mount();

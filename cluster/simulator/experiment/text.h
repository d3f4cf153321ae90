/* text.h — text in XML, and the beginning of drawings. */
#ifndef SC_TEXT_H
#define SC_TEXT_H

#include <stdio.h>

/* Prints text with the characters & < > escaped, because names come from the command line and from files. */
void ex_put_escaped(FILE *stream, const char *text);

/* Begins a white drawing, with its title at x = left. */
void ex_put_svg_begin(FILE *stream, int width, int height, int left, const char *title);

#endif

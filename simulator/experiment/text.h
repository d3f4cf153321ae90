/* text.h — text in XML. */
#ifndef SC_TEXT_H
#define SC_TEXT_H

#include <stdio.h>

/* Prints text with the characters & < > escaped, because names come from the command line and from files. */
void ex_put_escaped(FILE *stream, const char *text);

#endif

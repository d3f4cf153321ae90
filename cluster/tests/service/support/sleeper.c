/* sleeper.c — a reader that never ends, in place of mdotd. */
#include <unistd.h>

int main(void)
{
    for (;;) pause();
}

#include "state.h"

sim_state sim;

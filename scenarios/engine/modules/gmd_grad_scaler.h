/* gmd_grad_scaler.h - torch.GradScaler: the scale, and for each optimizer whether a gradient
 * overflowed. What is in the numbers is not computed: no step is skipped. */
#ifndef GMD_GRAD_SCALER_H
#define GMD_GRAD_SCALER_H

#include "gmd_optimizer.h"

struct grad_scaler;
extern const struct thing_class grad_scaler_class;

struct grad_scaler *grad_scaler_new(struct engine *engine, bool enabled);
struct tensor *grad_scaler_scale(struct engine *engine, struct grad_scaler *scaler,
                                 struct tensor *loss);
/* Each is engine_misuse() where torch raises: before the first scale(), or twice before update().
 */
void grad_scaler_unscale(struct engine *engine, struct grad_scaler *scaler,
                         struct optimizer *optimizer);
void grad_scaler_step(struct engine *engine, struct grad_scaler *scaler,
                      struct optimizer *optimizer);
void grad_scaler_update(struct engine *engine, struct grad_scaler *scaler);

#endif

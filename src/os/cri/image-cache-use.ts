import { declared } from '../config/public.ts'
import type { Kernel } from '../kernel.ts'

/** Whether a machine serves the images that came with it (`machine.features.imageCache.localEnabled`). A container came without. */
export const usesImageCache = (mode: Kernel['mode'], config: Parameters<typeof declared>[0]): boolean =>
  mode !== 'container' && declared(config)?.machine.features?.imageCache?.localEnabled === true

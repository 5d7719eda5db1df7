import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { Service } from '../../runtime/resources/service.ts'
import { imageCaches } from '../image-caches.ts'
import { imagesFile } from '../registryd.ts'
import { ImageCacheConfig } from '../resources/image-cache-config.ts'

/** The image caches on this machine, and whether registryd serves them by now. */
export const configImageCache = ({ files }: { files: Pick<Kernel['files'], 'exists'> }): Controller =>
  defineController({
    name: 'cri.ImageCacheConfigController',
    effects: 'none',
    inputs: { services: weak(Service, { id: 'registryd' }), config: weak(MachineConfig, { id: 'v1alpha1' }) },
    outputs: { cache: exclusive(ImageCacheConfig) },
    reconcile({ services, config, cache }) {
      const ready = services.get('registryd')?.spec.healthy ?? false
      const roots = [imagesFile, ...imageCaches({ files }, config.get('v1alpha1'))]
      cache.put('image-cache', { status: ready ? 'ready' : 'preparing', copyStatus: 'skipped', roots })
    },
  })

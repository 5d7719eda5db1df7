import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { Service } from '../../runtime/resources/service.ts'
import { imagesFile } from '../registryd.ts'
import { ImageCacheConfig } from '../resources/image-cache-config.ts'

/** The images that the root file system holds, and whether registryd serves them by now. */
export const configImageCache: Controller = defineController({
  name: 'cri.ImageCacheConfigController',
  inputs: { services: weak(Service, { id: 'registryd' }) },
  outputs: { cache: exclusive(ImageCacheConfig) },
  reconcile({ services, cache }) {
    const ready = services.get('registryd')?.spec.healthy ?? false
    cache.put('image-cache', { status: ready ? 'ready' : 'preparing', copyStatus: 'skipped', roots: [imagesFile] })
  },
})

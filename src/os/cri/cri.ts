import type { Area } from '../area.ts'
import { containerMethods } from './api/containers.ts'
import { debugContainer } from './api/debug.ts'
import { imageMethods } from './api/images.ts'
import { writeBaseSpec, writeConfig } from './controllers/config-files.ts'
import { configImageCache } from './controllers/image-cache.ts'
import { collectImages } from './controllers/image-gc.ts'
import { configRegistries } from './controllers/registries.ts'
import { writeRegistries } from './controllers/registry-files.ts'
import { restartOnConfig } from './controllers/restart.ts'
import { configSeccompProfiles, writeSeccompProfiles } from './controllers/seccomp.ts'
import { resources } from './resource-types.ts'
import { containerdService } from './services/containerd.ts'
import { criService } from './services/cri.ts'
import { registrydService } from './services/registryd.ts'

/** Containers and their images: the daemons that run them, and the registries. */
export const cri: Area = {
  name: 'cri',
  resources,
  controllers: ({ kernel, store, supervisor }) => [
    configImageCache(kernel),
    configRegistries,
    writeRegistries,
    writeConfig(kernel),
    writeBaseSpec,
    configSeccompProfiles,
    writeSeccompProfiles(kernel),
    restartOnConfig({ supervisor, store }),
    collectImages(),
  ],
  services: (machine) => [containerdService(machine), criService(machine), registrydService(machine)],
  methods: (machine) => [...containerMethods(machine), ...imageMethods(), debugContainer(machine)],
}

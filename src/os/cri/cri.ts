import type { Area } from '../area.ts'
import { containerMethods } from './api/containers.ts'
import { debugContainer } from './api/debug.ts'
import { imageMethods } from './api/images.ts'
import { ConfigRead } from './config-read.ts'
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
  parts(machine) {
    const { kernel } = machine
    const read = new ConfigRead()
    return {
      controllers: [
        configImageCache(kernel),
        configRegistries,
        writeRegistries,
        writeConfig(kernel),
        writeBaseSpec,
        configSeccompProfiles,
        writeSeccompProfiles(kernel),
        restartOnConfig(machine, read),
        collectImages(),
      ],
      services: [containerdService(machine), criService(machine, read), registrydService(machine)],
      methods: [...containerMethods(machine), ...imageMethods(), debugContainer(machine)],
    }
  },
}

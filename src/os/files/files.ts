import type { Area } from '../area.ts'
import { listMethods } from './api/list.ts'
import { readMethods } from './api/read.ts'
import { applyEtcFiles } from './controllers/etc-file.ts'
import { resources } from './resource-types.ts'

/** The files area: generated files under /etc, and the API for reading files. */
export const files: Area = {
  name: 'files',
  resources,
  parts: (machine) => ({
    controllers: [applyEtcFiles(machine.kernel)],
    methods: [...listMethods(machine.kernel), ...readMethods(machine)],
  }),
}

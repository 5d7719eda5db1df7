import type { Area } from '../area.ts'
import { listMethods } from './api/list.ts'
import { readMethods } from './api/read.ts'
import { applyEtcFiles } from './controllers/etc-file.ts'
import { resources } from './resource-types.ts'

/** The files area: generated files under /etc, and the API for reading files. */
export const files: Area = {
  name: 'files',
  resources,
  controllers: ({ kernel }) => [applyEtcFiles(kernel)],
  methods: (machine) => [...listMethods(machine.kernel), ...readMethods(machine)],
}

import type { Area } from '../area.ts'
import { applyEtcFiles } from './controllers/etc-file.ts'
import { resources } from './nouns.ts'

/** Generated files under /etc. */
export const files: Area = {
  name: 'files',
  resources,
  controllers: ({ kernel }) => [applyEtcFiles(kernel)],
}

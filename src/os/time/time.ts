import type { Area } from '../area.ts'
import { syncTime } from './controllers/sync.ts'
import { resources } from './nouns.ts'

/** The clock. */
export const time: Area = {
  name: 'time',
  resources,
  controllers: ({ kernel }) => [syncTime(kernel)],
}

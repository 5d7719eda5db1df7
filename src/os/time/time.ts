import type { Area } from '../area.ts'
import { timeMethods } from './api/time.ts'
import { observeAdjtime } from './controllers/adjtime.ts'
import { syncTime } from './controllers/sync.ts'
import { resources } from './nouns.ts'

/** The clock. */
export const time: Area = {
  name: 'time',
  resources,
  controllers: ({ kernel }) => [syncTime(kernel), ...(kernel.mode === 'container' ? [] : [observeAdjtime(kernel)])],
  methods: ({ kernel }) => timeMethods(kernel),
}

import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Where events are sent. */
export const EventSinkConfig = defineResource({
  type: 'EventSinkConfigs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'EventSinkConfig',
  spec: v.object({ endpoint: v.string() }),
})

import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Where the logs of services are sent, and with what. */
export const LogDestination = defineResource({
  type: 'LogDestinations.runtime.ichor.dev',
  namespace: 'runtime',
  displayType: 'LogDestination',
  initials: false,
  columns: { Endpoint: '{.endpoint}' },
  spec: v.object({
    endpoint: v.string(),
    /** Fields of every message. */
    extraTags: v.record(v.string(), v.string()),
  }),
})

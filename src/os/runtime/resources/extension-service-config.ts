import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Files and variables for an extension's service. */
export const ExtensionServiceConfig = defineResource({
  type: 'ExtensionServiceConfigs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'ExtensionServiceConfig',
  sensitive: true,
  spec: v.object({
    files: v.optional(v.array(v.object({ content: v.string(), mountPath: v.string() }))),
    environment: v.optional(v.array(v.string())),
  }),
})

/** Which files of an extension's service are on disk. */
export const ExtensionServiceConfigStatus = defineResource({
  type: 'ExtensionServiceConfigStatuses.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'ExtensionServiceConfigStatus',
  spec: v.object({ specVersion: v.string() }),
})

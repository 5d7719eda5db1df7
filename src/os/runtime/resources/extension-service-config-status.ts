import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Which files of an extension's service are on disk. */
export const ExtensionServiceConfigStatus = defineResource({
  type: 'ExtensionServiceConfigStatuses.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'ExtensionServiceConfigStatus',
  spec: v.object({ specVersion: v.string() }),
})

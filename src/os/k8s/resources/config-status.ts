import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Whether the control plane's configuration files are on disk. */
export const ConfigStatus = defineResource({
  type: 'ConfigStatuses.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'ConfigStatus',
  columns: { Ready: '{.ready}', 'Secrets Version': '{.version}' },
  spec: v.object({ ready: v.boolean(), version: v.string() }),
})

import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Whether the control plane's secrets are on disk. */
export const SecretStatus = defineResource({
  type: 'SecretStatuses.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'SecretStatus',
  columns: { Ready: '{.ready}', 'Secrets Version': '{.version}' },
  spec: v.object({ ready: v.boolean(), version: v.string() }),
})

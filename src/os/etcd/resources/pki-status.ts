import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Which version of etcd's certificates is on disk. */
export const PKIStatus = defineResource({
  type: 'PKIStatuses.etcd.talos.dev',
  namespace: 'etcd',
  displayType: 'PKIStatus',
  columns: { Ready: '{.ready}', 'Secrets Version': '{.version}' },
  spec: v.object({ ready: v.boolean(), version: v.string() }),
})

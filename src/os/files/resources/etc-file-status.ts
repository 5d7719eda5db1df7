import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A file under /etc as it was written. */
export const EtcFileStatus = defineResource({
  type: 'EtcFileStatuses.files.talos.dev',
  namespace: 'files',
  displayType: 'EtcFileStatus',
  spec: v.object({ specVersion: v.string() }),
})

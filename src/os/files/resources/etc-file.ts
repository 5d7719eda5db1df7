import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** The certificates of all trusted authorities, below /etc. */
export const certificateBundle = 'ssl/certs/ca-certificates.crt'

/** A desired file under /etc. */
export const EtcFileSpec = defineResource({
  type: 'EtcFileSpecs.files.talos.dev',
  namespace: 'files',
  displayType: 'EtcFileSpec',
  sensitive: true,
  spec: v.object({ contents: v.string(), mode: integer, selinux_label: v.string() }),
})

/** A file written under /etc. */
export const EtcFileStatus = defineResource({
  type: 'EtcFileStatuses.files.talos.dev',
  namespace: 'files',
  displayType: 'EtcFileStatus',
  spec: v.object({ specVersion: v.string() }),
})

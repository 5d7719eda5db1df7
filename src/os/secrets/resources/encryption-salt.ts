import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { bytes } from '../../values.ts'

/** Salt for the keys of encrypted volumes. */
export const EncryptionSalt = defineResource({
  type: 'EncryptionSalts.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'EncryptionSalt',
  sensitive: true,
  spec: v.object({ diskSalt: bytes }),
})

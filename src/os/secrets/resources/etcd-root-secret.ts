import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { certificateAndKey } from '../../values.ts'

/** The certificate authority of etcd. */
export const EtcdRootSecret = defineResource({
  type: 'EtcdRootSecrets.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'EtcdRootSecret',
  sensitive: true,
  spec: v.object({ etcdCA: v.optional(certificateAndKey) }),
})

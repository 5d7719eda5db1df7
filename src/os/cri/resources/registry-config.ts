import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { certificateAndKey } from '../../values.ts'

/** Mirrors, credentials and TLS of image registries. */
export const RegistryConfig = defineResource({
  type: 'RegistryConfigs.cri.talos.dev',
  namespace: 'cri',
  displayType: 'RegistryConfig',
  sensitive: true,
  spec: v.object({
    mirrors: v.optional(
      v.record(
        v.string(),
        v.object({
          endpoints: v.optional(v.array(v.object({ endpoint: v.string(), overridePath: v.boolean() })), []),
          skipFallback: v.optional(v.boolean()),
        }),
      ),
    ),
    auths: v.optional(
      v.record(
        v.string(),
        v.object({
          username: v.optional(v.string()),
          password: v.optional(v.string()),
          auth: v.optional(v.string()),
          identityToken: v.optional(v.string()),
        }),
      ),
    ),
    tls: v.optional(
      v.record(
        v.string(),
        v.object({
          clientIdentity: v.optional(certificateAndKey),
          ca: v.optional(v.string()),
          insecureSkipVerify: v.optional(v.boolean()),
        }),
      ),
    ),
  }),
})

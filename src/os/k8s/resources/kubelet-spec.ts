import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** How the kubelet runs: image, arguments, mounts, configuration. */
export const KubeletSpec = defineResource({
  type: 'KubeletSpecs.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubeletSpec',
  sensitive: true,
  spec: v.object({
    image: v.string(),
    args: v.optional(v.array(v.string())),
    extraMounts: v.optional(
      v.array(
        v.object({
          destination: v.string(),
          type: v.string(),
          source: v.string(),
          options: v.optional(v.array(v.string()), []),
          uidmappings: v.optional(v.array(v.object({ containerid: integer, hostid: integer, size: integer })), []),
          gidmappings: v.optional(v.array(v.object({ containerid: integer, hostid: integer, size: integer })), []),
        }),
      ),
    ),
    expectedNodename: v.optional(v.string()),
    config: v.optional(v.record(v.string(), v.unknown()), {}),
    credentialProviderConfig: v.optional(v.record(v.string(), v.unknown())),
  }),
})

import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The platform's metadata of the machine. */
export const PlatformMetadata = defineResource({
  type: 'PlatformMetadatas.talos.dev',
  namespace: 'runtime',
  displayType: 'PlatformMetadata',
  columns: { Platform: '{.platform}', Type: '{.instanceType}', Region: '{.region}', Zone: '{.zone}' },
  spec: v.object({
    platform: v.optional(v.string()),
    hostname: v.optional(v.string()),
    region: v.optional(v.string()),
    zone: v.optional(v.string()),
    instanceType: v.optional(v.string()),
    instanceId: v.optional(v.string()),
    providerId: v.optional(v.string()),
    spot: v.optional(v.boolean()),
    internalDNS: v.optional(v.string()),
    externalDNS: v.optional(v.string()),
    tags: v.optional(v.record(v.string(), v.string())),
  }),
})

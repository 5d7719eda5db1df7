import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Manifests to apply beside the built-in ones. */
export const ExtraManifestsConfig = defineResource({
  type: 'ExtraManifestsConfigs.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'ExtraManifestsConfig',
  spec: v.object({
    extraManifests: v.optional(
      v.array(
        v.object({
          name: v.string(),
          url: v.string(),
          priority: v.string(),
          extraHeaders: v.optional(v.record(v.string(), v.string()), {}),
          inlineManifest: v.string(),
        }),
      ),
      [],
    ),
  }),
})

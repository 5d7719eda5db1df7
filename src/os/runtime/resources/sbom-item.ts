import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A part of the image, its version and licence. */
export const SBOMItem = defineResource({
  type: 'SBOMItems.talos.dev',
  namespace: 'runtime',
  displayType: 'SBOMItem',
  aliases: ['sbom', 'sboms'],
  columns: { Version: '{.version}', License: '{.license}', Extension: '{.extension}' },
  spec: v.object({
    name: v.string(),
    version: v.string(),
    license: v.optional(v.string()),
    cpes: v.optional(v.array(v.string())),
    purls: v.optional(v.array(v.string())),
    extension: v.optional(v.boolean()),
  }),
})

import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** An extension of the system that is part of the image. */
export const ExtensionStatus = defineResource({
  type: 'ExtensionStatuses.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'ExtensionStatus',
  aliases: ['extensions'],
  columns: { Name: '{.metadata.name}', Version: '{.metadata.version}' },
  spec: v.object({
    image: v.string(),
    metadata: v.object({
      name: v.string(),
      version: v.string(),
      author: v.string(),
      description: v.string(),
      compatibility: v.object({ talos: v.object({ version: v.string() }) }),
      extraInfo: v.optional(v.string()),
    }),
  }),
})

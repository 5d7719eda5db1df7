/** Manifests and indexes of images in registries and archives (OCI image specification): foreign input of any shape. */
import * as v from 'valibot'

const optionalText = v.optional(v.nullable(v.string()))

const descriptor = v.object({
  mediaType: optionalText,
  artifactType: optionalText,
  digest: v.string(),
  platform: v.optional(v.nullable(v.object({ os: optionalText, architecture: optionalText }))),
  annotations: v.optional(v.nullable(v.record(v.string(), v.string()))),
})

/** An index of many platforms, or an image of many layers, has hundreds of entries. */
const descriptors = v.optional(v.nullable(v.pipe(v.array(descriptor), v.maxLength(10_000))))

const imageDocument = v.object({
  mediaType: optionalText,
  config: v.optional(v.nullable(descriptor)),
  manifests: descriptors,
  layers: descriptors,
})

/** A manifest or an index; both have only the fields known here. */
export type ImageDocument = v.InferOutput<typeof imageDocument>

/** Parses a manifest or an index; undefined for anything else, JSON or not. */
export const parseImageDocument = (text: string): ImageDocument | undefined => parsed(imageDocument, text)

const imageConfig = v.object({ architecture: optionalText })

/** The architecture in the configuration of an image; undefined where it names none or is no JSON, as that of an artifact. */
export const parseArchitecture = (text: string): string | undefined => parsed(imageConfig, text)?.architecture || undefined

function parsed<Schema extends v.GenericSchema>(schema: Schema, text: string): v.InferOutput<Schema> | undefined {
  try {
    const { success, output } = v.safeParse(schema, JSON.parse(text))
    return success ? output : undefined
  } catch {
    return undefined
  }
}

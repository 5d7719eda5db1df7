/** The forms in which a collector takes messages. */
export const protocols = ['grpc', 'http/protobuf', 'http/json'] as const

/** One of them. */
export type Protocol = (typeof protocols)[number]

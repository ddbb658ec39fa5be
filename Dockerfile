# kordon as a static binary in an empty image, without root:
#   docker build -t kordon .
# It needs no shell, no certificates (the service account brings those of the cluster) and writes nothing but its journal.
FROM rust:1.95-alpine AS build
# zstd and the allocator are C.
RUN apk add --no-cache musl-dev gcc make
WORKDIR /kordon
COPY . .
RUN cargo build --locked --profile dist --target x86_64-unknown-linux-musl \
 && strip target/x86_64-unknown-linux-musl/dist/kordon

FROM scratch
COPY --from=build /kordon/target/x86_64-unknown-linux-musl/dist/kordon /kordon
USER 65532:65532
# The journal of the controller: mount a volume here.
ENV XDG_STATE_HOME=/state
ENTRYPOINT ["/kordon"]

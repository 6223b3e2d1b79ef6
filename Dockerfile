# The board: `board api`, `board worker`, `board migrate`; compose.yaml starts them. Built by `docker compose build`.
FROM python:3.11-slim

# Film work needs it; nothing else of the board needs anything from outside.
RUN apt-get update && apt-get install --yes --no-install-recommends ffmpeg && rm -rf /var/lib/apt/lists/*

COPY . /src
RUN pip install --no-cache-dir --prefer-binary --constraint /src/constraints.txt '/src[mcp,s3]' \
    && install -D /src/deploy/health.py /opt/board/health.py \
    && rm -rf /src \
    && useradd --uid 10001 --user-group --no-create-home board \
    && install -d -o board -g board /data

USER board
WORKDIR /data
VOLUME /data
ENV PYTHONUNBUFFERED=1
ENTRYPOINT ["board"]
CMD ["up", "--host", "0.0.0.0"]
